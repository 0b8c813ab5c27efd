//! The host's own functions are not the handler's: no hook of the language leads to one.

use std::sync::Arc;

use quarterdeck_contracts::Outcome;
use quarterdeck_contracts::handler::{CapabilityErrorCode, Handler};
use quarterdeck_host_js::{FetchConfig, HostConfig, JsHost};
use quarterdeck_outbound::Addresses;
use serde_json::{Value, json};

use crate::world::{AnswerMode, Slow, config, load_files, within};

/// Installed in every test: collects every function and every object that a hook is handed. A function is private when
/// it is not one of the language's or the platform's, and not the handler's own: those are gathered first, by walking
/// everything that can be reached from the global object and the context.
const COLLECT: &str = r#"
    const seen = new Set();
    const own = new Set();
    const found = [];
    const isObject = (value) => (typeof value === 'object' && value !== null) || typeof value === 'function';
    const { getOwnPropertyDescriptor, getPrototypeOf } = Object;
    const { ownKeys } = Reflect;
    const { has, add } = Set.prototype;
    const { call } = Function.prototype;
    const hasIn = call.bind(has), addTo = call.bind(add);
    const push = call.bind(Array.prototype.push);
    /** Everything that a handler may have. */
    function admit(value) {
      if (!isObject(value) || hasIn(seen, value)) return;
      addTo(seen, value);
      admit(getPrototypeOf(value));
      const keys = ownKeys(value);
      for (let n = 0; n < keys.length; n++) {
        const property = getOwnPropertyDescriptor(value, keys[n]);
        admit(property.value); admit(property.get); admit(property.set);
      }
    }
    /** A hook was handed this: whatever of it is not admitted and is a function, or holds one, is private. */
    function handed(where, ...values) {
      for (let n = 0; n < values.length; n++) look(where, values[n], 0);
    }
    function look(where, value, depth) {
      if (!isObject(value) || hasIn(seen, value) || hasIn(own, value) || depth > 4) return;
      if (typeof value === 'function') { push(found, `${where}: ${value.name || 'a function'}`); return; }
      let keys = [];
      // Some objects of the handler's own throw when they are looked at.
      try { keys = ownKeys(value); } catch {}
      for (let n = 0; n < keys.length; n++) {
        let property;
        try { property = getOwnPropertyDescriptor(value, keys[n]); } catch {}
        if (property !== undefined && 'value' in property) look(`${where}.${String(keys[n])}`, property.value, depth + 1);
      }
    }
    /** Functions of the handler, which it may well meet again. */
    const mine = (fn) => { addTo(own, fn); if (isObject(fn.prototype)) addTo(own, fn.prototype); return fn; };
    for (const fn of [admit, handed, look, mine, isObject, hasIn, addTo, push, execute]) mine(fn);
"#;

/// What a hostile handler installs, each with the functions of its own that it uses.
const HOOKS: [(&str, &str); 14] = [
    (
        "prepareStackTrace",
        "const hook = mine((error, sites) => {
           if (!Array.isArray(sites)) return '';
           for (const site of sites) {
             handed('site.getFunction', site.getFunction?.()); handed('site.getThis', site.getThis?.());
             handed('site', ...Object.values(site));
           }
           return sites;
         });
         for (const type of [Error, TypeError, RangeError, SyntaxError, InternalError]) {
           try { type.prepareStackTrace = hook; } catch {}
           try { Object.defineProperty(type, 'prepareStackTrace', { value: hook, configurable: true, writable: true }); } catch {}
           try { Reflect.set(type, 'prepareStackTrace', hook, Error); } catch {}
         }
         Error.stackTraceLimit = 100;",
    ),
    (
        "getters on Object.prototype",
        "for (const name of ['callback', 'resolve', 'reject', 'finish', 'args', 'host', 'request', 'wait', 'begin', 'entry',
           'then', 'toJSON', 'message', 'code', 'retryAfter', 'clamped', 'voiceActive', 'state', 'mode',
           'isActive', 'declared', 'type', 'details', 'suggestion', 'status', 'href', 'username', 'password', 'url']) {
           const getter = mine(function () { if (this !== Object.prototype) handed(`get ${name}`, this); return undefined; });
           const setter = mine(function (value) {
             handed(`set ${name}`, this, value);
             Object.defineProperty(this, name, { value, writable: true, enumerable: true, configurable: true });
           });
           Object.defineProperty(Object.prototype, name, { get: getter, set: setter, configurable: true });
         }",
    ),
    (
        "a numbered setter on Object.prototype",
        "for (let id = 0; id < 40; id++) {
           const setter = mine(function (value) {
             handed('set id', this, value);
             Object.defineProperty(this, id, { value, writable: true, enumerable: true, configurable: true });
           });
           Object.defineProperty(Object.prototype, id, { get: mine(function () { handed('get id', this); }), set: setter, configurable: true });
         }",
    ),
    (
        "then on Object.prototype",
        "Object.prototype.then = mine(function (resolve, reject) { handed('then', this); delete Object.prototype.then; resolve(this); });",
    ),
    (
        "Promise.prototype.then",
        "const then = Promise.prototype.then; mine(then);
         Promise.prototype.then = mine(function (...args) { handed('then', this); return then.apply(this, args); });",
    ),
    (
        "Promise",
        "const Old = Promise;
         // The language makes promises of its own in this way; code of the host's has no file.
         const species = mine(class extends Old {
           constructor(run) { if (new Error().stack.split('\\n')[1]?.includes('<null>')) handed('Promise', run); super(run); }
         });
         globalThis.Promise = species; Object.defineProperty(Old, Symbol.species, { get: mine(() => species) });
         Object.defineProperty(Old.prototype, 'constructor', { value: species, configurable: true });",
    ),
    (
        "JSON",
        "for (const name of ['parse', 'stringify']) { const old = JSON[name];
           JSON[name] = mine(function (...args) { handed(`JSON.${name}`, this, ...args); return old.apply(JSON, args); }); }",
    ),
    (
        "toJSON everywhere",
        "for (const type of [Object, Array, String, Number, Function, Promise]) {
           type.prototype.toJSON = mine(function (key) { handed('toJSON', this); return this; }); }",
    ),
    (
        "Array.prototype",
        "for (const name of ['push', 'map', 'filter', 'find', 'some', 'forEach', 'sort', 'pop', 'slice', 'concat']) {
           const old = Array.prototype[name];
           Array.prototype[name] = mine(function (...args) { handed(`Array.${name}`, this); return old.apply(this, args); }); }
         const iterate = Array.prototype[Symbol.iterator];
         Array.prototype[Symbol.iterator] = mine(function () { handed('iterate', this); return iterate.call(this); });",
    ),
    (
        "Function.prototype",
        "for (const name of ['call', 'apply', 'bind']) { const old = Function.prototype[name];
           Function.prototype[name] = mine(function (...args) { handed(`Function.${name}`, this, ...args); return Reflect.apply(old, this, args); }); }
         try { Object.defineProperty(Function.prototype, Symbol.hasInstance, { value: mine(function (value) { handed('hasInstance', this, value); return false; }) }); } catch {}",
    ),
    (
        "hasInstance of errors",
        "for (const type of [Error, RangeError, InternalError]) {
           Object.defineProperty(type, Symbol.hasInstance, { value: mine(function (value) { handed('hasInstance', this, value); return true; }) }); }",
    ),
    (
        "constructors",
        "for (const name of ['Error', 'TypeError', 'RangeError', 'Uint8Array', 'String', 'Date', 'Object', 'Map']) {
           const old = globalThis[name];
           globalThis[name] = mine(new Proxy(old, {
             apply: mine((target, self, args) => { handed(`${name}()`, self, ...args); return Reflect.apply(target, self, args); }),
             construct: mine((target, args, by) => { handed(`new ${name}`, ...args, by); return Reflect.construct(target, args); }),
           })); }",
    ),
    (
        "Reflect and Object",
        "for (const [holder, names] of [[Reflect, ['apply', 'construct', 'deleteProperty']], [Object, ['defineProperty', 'freeze', 'isFrozen', 'keys', 'entries', 'assign']]]) {
           for (const name of names) { const old = holder[name];
             holder[name] = mine(function (...args) { handed(name, ...args); return old.apply(this, args); }); } }",
    ),
    (
        "walking the stack",
        "const caller = mine(function caller() { for (const name of ['caller', 'arguments', 'callee']) {
           try { handed(name, caller[name]); } catch {} try { handed(name, arguments[name]); } catch {} } });
         globalThis.hookCaller = caller;",
    ),
];

/// Ways into the host's functions, most of which end in an error inside of them.
const WAYS_IN: &str = r#"
    const proxy = new Proxy({}, {
      get: mine((target, name, receiver) => { handed(`proxy.${String(name)}`, receiver); return undefined; }),
      has: mine(() => false), ownKeys: mine(() => { throw new Error('keys'); }),
      getOwnPropertyDescriptor: mine(() => { throw new Error('descriptor'); }),
    });
    const nasty = { toString: mine(() => { globalThis.hookCaller?.(); throw new Error('toString'); }), valueOf: mine(() => { throw new Error('valueOf'); }),
      toJSON: mine(() => { throw new Error('toJSON'); }), get buffer() { throw new Error('buffer'); } };
    const cyclic = {}; cyclic.self = cyclic;
    const deep = mine((n) => { try { return deep(n + 1); } catch (error) { try { setTimeout(() => {}); } catch (inner) { error.stack; inner.stack; } return 0; } });
    const attempts = [
      () => setTimeout('no function'), () => setTimeout(null, nasty), () => setTimeout(() => {}, nasty), () => clearTimeout(nasty),
      () => clearTimeout(1), () => clearTimeout(2), () => clearTimeout(3), () => clearTimeout('__proto__'), () => clearTimeout('constructor'),
      () => setTimeout(mine(function () { handed('timer', this, ...arguments); }), 0, proxy),
      () => console.log(nasty), () => console.log(proxy), () => console.log(new Error('logged'), cyclic, Symbol('s')), () => console.assert(false, nasty),
      () => crypto.getRandomValues(nasty), () => crypto.getRandomValues(null), () => crypto.randomUUID(nasty),
      () => new Date(nasty), () => Date(nasty), () => Date.now(nasty), () => performance.now(nasty), () => Math.random(nasty),
      () => context.audit.log(nasty, cyclic), () => context.audit.log('x', proxy), () => context.progress(nasty),
      () => context.kb.search(cyclic), () => context.kb.search(nasty), () => context.kb.search(proxy), () => context.kb.search(1n),
      () => context.store.get('x'), () => context.callTool(nasty, proxy), () => context.messaging.send(new Proxy([], {})),
      () => { for (let id = 0; id < 80; id++) clearTimeout(id); },
      () => context.kb.search('x'.repeat(2_000_000)), () => context.voice.isActive(), () => deep(0),
      () => { for (let n = 0; n < 300; n++) setTimeout(() => {}, 1e6); },
      () => structuredClone(mine(() => {})), () => structuredClone(proxy), () => new URL('nonsense'), () => new URL(nasty), () => new URLSearchParams(nasty),
      () => new URLSearchParams(proxy), () => new TextDecoder('latin-9'), () => new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([255])),
      () => new TextEncoder().encode(nasty), () => new Headers(nasty), () => new Headers(proxy), () => fetch(nasty), () => fetch('http://nowhere.invalid/', proxy),
      () => fetch('http://localhost/', { body: nasty }), () => fetch('http://user:pass@localhost/'), () => fetch('http://localhost/'), () => new URL('http://a/').searchParams.append('x', nasty),
    ];
    for (let n = 0; n < attempts.length; n++) mine(attempts[n]);
    const waiting = [];
    for (const attempt of attempts) {
      try { waiting.push(attempt()); } catch (error) { handed('thrown', error); try { error?.stack; } catch {} try { Error.captureStackTrace?.({}); } catch {} }
    }
    for (const wait of waiting) {
      try { await wait; } catch (error) {
        handed('rejected', error);
        try { const { constructor } = error; handed('constructor', ...Reflect.ownKeys(constructor).filter((key) => key !== 'prototype').map((key) => constructor[key])); error.stack; } catch {}
      }
    }
"#;

fn hostile(host: &JsHost, hook: &str, at_top_level: bool) -> Arc<dyn Handler> {
    let (above, inside) = if at_top_level { (hook, "") } else { ("", hook) };
    // Everything is admitted before a hook could be handed anything: the hook sits between.
    let source = format!(
        "{COLLECT}
         admit(globalThis); admit((async () => {{}})()); admit(async function* () {{}}); admit(function* () {{}}); admit([][Symbol.iterator]());
         const AsyncFrom = Promise.resolve(); admit(AsyncFrom);
         {above}
         export async function execute({{ context }}) {{
           admit(context);
           {inside}
           try {{ {WAYS_IN} }} catch (error) {{ push(found, `the test itself failed: ${{error?.message}}`); }}
           const data = [];
           for (let n = 0; n < found.length && n < 20; n++) data[n] = found[n];
           return {{ ok: true, data }};
         }}"
    );
    load_files(host, &[("tool/handler.js", &source)], &["localhost", "nowhere.invalid"]).unwrap()
}

#[tokio::test]
async fn no_hook_of_the_language_is_handed_a_function_of_the_hosts() {
    let fetch = FetchConfig { addresses: Addresses::Public, ..FetchConfig::default() };
    let host = JsHost::new(HostConfig { fetch, ..config() }).unwrap();
    for (name, hook) in HOOKS {
        for at_top_level in [true, false] {
            for failing in [CapabilityErrorCode::NotAvailable, CapabilityErrorCode::RateLimit] {
                let handler = hostile(&host, hook, at_top_level);
                let context = Slow::new(AnswerMode::Failing(failing, Some(1.0)));
                let ended = handler.run(json!({}), context, within(10_000)).await;
                let answer = ended.unwrap_or_else(|error| panic!("{name}: {error}"));
                let found = match answer.outcome {
                    Outcome::Success(found) => found,
                    Outcome::Failure(error) => panic!("{name}: {error:?}"),
                };
                assert_eq!(found, json!([]), "{name}, at the top level: {at_top_level}");
            }
        }
    }
}

/// The hook can be set, as libraries do, and the language's own traces are as before.
#[tokio::test]
async fn prepare_stack_trace_can_be_set_and_has_no_effect() {
    let host = JsHost::new(config()).unwrap();
    let source = "let called = 0;
        Error.prepareStackTrace = () => { called++; return 'mine'; };
        export const execute = () => {
          const target = {}; Error.captureStackTrace?.(target);
          return { ok: true, data: { called, kind: typeof Error.prepareStackTrace, stack: new Error('x').stack.includes('execute') } };
        };";
    let handler = load_files(&host, &[("tool/handler.js", source)], &[]).unwrap();
    let data: Value = crate::world::data(&handler, json!({})).await;
    assert_eq!(data, json!({ "called": 0, "kind": "function", "stack": true }));
}
