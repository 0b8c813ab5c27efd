// Arguments to begin with, made from a schema: what is required, in its simplest form.

/** How deep a schema is followed. */
const DEEPEST = 5;

/**
 * @param {any} schema
 * @param {number} [depth]
 * @returns {any}
 */
export function sample(schema, depth = 0) {
  if (typeof schema !== 'object' || schema === null || depth > DEEPEST) return {};
  const { default: usual, examples, enum: values, const: only } = schema;
  if (usual !== undefined) return usual;
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
      return (schema.minItems ?? 0) > 0 ? [sample(schema.items, depth + 1)] : [];
    default: {
      const required = Array.isArray(schema.required) ? schema.required : [];
      return Object.fromEntries(
        required.map((/** @type {string} */ name) => [name, sample(schema.properties?.[name], depth + 1)]),
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
