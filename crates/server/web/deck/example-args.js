// Example arguments built from a schema: the required properties with simple values.

const MAX_DEPTH = 5;

/**
 * @param {any} schema
 * @param {number} [depth]
 * @returns {any}
 */
export function exampleArgs(schema, depth = 0) {
  if (typeof schema !== 'object' || schema === null || depth > MAX_DEPTH) return {};
  const { default: byDefault, examples, enum: values, const: only } = schema;
  if (byDefault !== undefined) return byDefault;
  if (Array.isArray(examples) && examples.length > 0) return examples[0];
  if (only !== undefined) return only;
  if (Array.isArray(values) && values.length > 0) return values[0];
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  switch (type) {
    case 'string':
      return text(schema);
    case 'integer':
    case 'number':
      return schema.minimum ?? 1;
    case 'boolean':
      return false;
    case 'array':
      return (schema.minItems ?? 0) > 0 ? [exampleArgs(schema.items, depth + 1)] : [];
    default: {
      const required = Array.isArray(schema.required) ? schema.required : [];
      return Object.fromEntries(
        required.map((/** @type {string} */ name) => [name, exampleArgs(schema.properties?.[name], depth + 1)]),
      );
    }
  }
}

/** @param {any} schema */
function text(schema) {
  const tomorrow = new Date(Date.now() + 86_400_000);
  switch (schema.format) {
    case 'date-time':
      return `${tomorrow.toISOString().slice(0, 13)}:00:00Z`;
    case 'date':
      return tomorrow.toISOString().slice(0, 10);
    case 'email':
      return 'ann@example.com';
    case 'uri':
      return 'https://example.com/';
    default:
      return '';
  }
}
