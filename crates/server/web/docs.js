'use strict';
// Shows /openapi.json. Everything becomes text, never markup: a description cannot put anything else into the page.

let api;

function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children.filter((child) => child !== undefined && child !== null));
  return element;
}

// The little of Markdown that descriptions use: paragraphs, `code` and **strong**.
function prose(text, className) {
  const block = make('div', { className: className || '' });
  for (const paragraph of (text || '').split('\n\n').filter(Boolean)) {
    const pieces = paragraph.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((piece) => {
      if (piece.startsWith('`')) return make('code', {}, piece.slice(1, -1));
      if (piece.startsWith('**')) return make('strong', {}, piece.slice(2, -2));
      return piece;
    });
    block.append(make('p', {}, ...pieces));
  }
  return block;
}

function resolve(value) {
  if (!value || !value.$ref) return value;
  return value.$ref.slice(2).split('/').reduce((place, key) => place[key], api);
}

const nameOf = (reference) => reference.split('/').pop();

function json(value) {
  return make('pre', { tabIndex: 0 }, typeof value === 'string' ? value : JSON.stringify(value, null, 2));
}

function typeOf(schema) {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
  if (schema.oneOf || schema.anyOf) return 'one of';
  const type = [].concat(schema.type || (schema.properties ? 'object' : 'anything')).join(' | ');
  return schema.format ? `${type} (${schema.format})` : type;
}

// A schema as a list of fields; a shared one is a link to where it is shown.
function fields(schema) {
  if (schema.$ref) return make('a', { href: `#schema-${nameOf(schema.$ref)}` }, nameOf(schema.$ref));
  const block = make('div', {}, make('code', {}, typeOf(schema)));
  if (schema.description) block.append(' ', schema.description);
  const list = make('ul', { className: 'fields' });
  for (const [name, property] of Object.entries(schema.properties || {})) {
    const mark = (schema.required || []).includes(name) ? ' (required) ' : ' ';
    list.append(make('li', {}, make('strong', {}, name), mark, fields(property)));
  }
  for (const kind of [...(schema.oneOf || []), ...(schema.anyOf || []), ...(schema.allOf || [])]) {
    list.append(make('li', {}, kind.title ? make('strong', {}, kind.title + ' ') : null, fields(kind)));
  }
  if (schema.items) list.append(make('li', {}, 'each: ', fields(schema.items)));
  if (typeof schema.additionalProperties === 'object') {
    list.append(make('li', {}, 'by name: ', fields(schema.additionalProperties)));
  }
  if (schema.contentSchema) list.append(make('li', {}, 'JSON: ', fields(schema.contentSchema)));
  if (list.children.length) block.append(list);
  return block;
}

function media(content) {
  return Object.entries(content || {}).flatMap(([type, { schema, example, examples, 'x-stream-example': stream }]) => [
    make('h3', {}, make('code', {}, type)),
    fields(schema || {}),
    example === undefined && !stream ? null : json(stream || example),
    ...Object.entries(examples || {}).flatMap(([name, { value }]) =>
      [make('p', { className: 'quiet' }, `Example: ${name}`), json(value)]),
  ]);
}

function answer(status, response) {
  const { description, headers, content } = resolve(response);
  const head = make('summary', {}, make('strong', { className: status >= '400' ? 'bad' : '' }, status), ' ', description);
  const names = Object.keys(headers || {});
  return make('details', {}, head,
    names.length ? make('p', { className: 'quiet' }, 'Headers: ', names.join(', ')) : null, ...media(content));
}

function parameter({ name, in: place, required, description, schema }) {
  return make('li', {}, make('strong', {}, name), ` in ${place}${required ? ', required' : ''}: `, fields(schema),
    prose(description, 'quiet'));
}

// Sends a GET with what was filled in, and shows what comes as it comes.
function trial(path, operation) {
  const inputs = (operation.parameters || []).map((known) => ({
    ...known,
    input: make('input', { name: known.name, required: Boolean(known.required), placeholder: String(known.example ?? '') }),
  }));
  const output = make('pre', { hidden: true, tabIndex: 0 });
  const note = make('p', { role: 'status' });
  const form = make('form', {}, ...inputs.map(({ name, input }) => make('label', {}, name, input)),
    make('button', {}, `Send GET ${path}`));
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const filled = inputs.filter(({ input }) => input.value);
    const of = (place) => filled.filter((known) => known.in === place).map(({ name, input }) => [name, input.value]);
    const target = of('path').reduce((url, [name, value]) => url.replace(`{${name}}`, encodeURIComponent(value)), path);
    const query = new URLSearchParams(of('query')).toString();
    note.textContent = 'Sending…';
    output.hidden = false;
    output.textContent = '';
    try {
      const response = await fetch(query ? `${target}?${query}` : target, { headers: of('header') });
      note.textContent = `${response.status} ${response.headers.get('content-type') || 'without content'}`;
      await show(response, output);
    } catch (error) {
      note.textContent = `Not answered: ${error.message}`;
    }
  });
  return make('div', {}, make('h3', {}, 'Try it'), form, note, output);
}

async function show(response, output) {
  if ((response.headers.get('content-type') || '').startsWith('application/json')) {
    output.textContent = JSON.stringify(await response.json(), null, 2);
    return;
  }
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) output.append(piece.value);
}

function operationBlock(path, method, operation) {
  const head = make('summary', {}, make('span', { className: `method ${method}` }, method.toUpperCase()),
    make('code', {}, path), ' ', make('span', { className: 'quiet' }, operation.summary));
  const block = make('details', { id: operation.operationId }, head, prose(operation.description));
  if (operation.parameters) {
    block.append(make('h3', {}, 'Parameters'), make('ul', { className: 'fields' }, ...operation.parameters.map(parameter)));
  }
  if (operation.requestBody) block.append(make('h3', {}, 'Body'), ...media(operation.requestBody.content).filter(Boolean));
  block.append(make('h3', {}, 'Answers'));
  block.append(...Object.entries(operation.responses).map(([status, response]) => answer(status, response)));
  if (method === 'get') block.append(trial(path, operation));
  return block;
}

function render() {
  const [main, nav] = [document.getElementById('main'), document.getElementById('paths')];
  document.getElementById('version').textContent = api.info.version;
  main.replaceChildren(prose(api.info.description));
  const all = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })));
  for (const tag of api.tags) {
    const mine = all.filter(({ operation }) => operation.tags.includes(tag.name));
    const links = mine.map(({ path, method, operation }) => make('li', {}, make('a', { href: `#${operation.operationId}` },
      make('span', { className: `method ${method}` }, method.toUpperCase()), make('code', {}, path))));
    nav.append(make('strong', {}, tag.name), make('ul', {}, ...links));
    main.append(make('h2', {}, tag.description));
    main.append(...mine.map(({ path, method, operation }) => operationBlock(path, method, operation)));
  }
  main.append(make('h2', {}, 'Schemas'));
  for (const [name, schema] of Object.entries(api.components.schemas)) {
    main.append(make('details', { id: `schema-${name}` }, make('summary', {}, make('code', {}, name)), fields(schema)));
  }
  open();
}

// A link to something that is folded unfolds it.
function open() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  if (target.tagName === 'DETAILS') target.open = true;
  target.scrollIntoView();
}

addEventListener('hashchange', open);
fetch('/openapi.json')
  .then((response) => response.json())
  .then((read) => { api = read; render(); })
  .catch((error) => { document.getElementById('state').textContent = `The description could not be read: ${error.message}`; });
