// The schema is what is looked at.

// @ts-check
/// <reference path="../../../../../tools/quarterdeck.d.ts" />

/** @param {import('quarterdeck').Call<{ phone?: string, email?: string }>} call */
export function execute({ args }) {
  return { ok: true, data: { reachable: args.phone ?? args.email } };
}
