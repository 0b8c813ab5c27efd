import { ErrorType, ToolError } from 'quarterdeck';

/** A refusal of one argument, in the form that the schema's own refusals have. */
export function invalid(path, message, suggestion) {
  const details = [{ path, keyword: 'rank', message }];
  return new ToolError(ErrorType.VALIDATION, message, { details, suggestion });
}
