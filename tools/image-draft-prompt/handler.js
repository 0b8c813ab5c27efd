// Variants of a prompt, always the same for the same arguments: no model, no chance, no network.

// @ts-check
/// <reference path="../quarterdeck.d.ts" />
import { compositions, lights, styles } from './choices.js';

/**
 * @typedef {{
 *   subject: string, purpose: string, style: string, mood: string, avoid: string, count: number
 * }} Args
 */

/** @param {import('quarterdeck').Call<Args>} call */
export async function execute({ args }) {
  const variants = [];
  for (let index = 0; index < args.count; index += 1) variants.push(variant(args, index));
  return { ok: true, data: { variants } };
}

/**
 * The lists have lengths without a common divisor, so that variants differ in more than one way.
 *
 * @param {Args} args
 * @param {number} index
 */
function variant(args, index) {
  const style = styles.find(({ name }) => name === args.style) ?? styles[index % styles.length];
  const composition = compositions[index % compositions.length];
  const light = lights[index % lights.length];
  const sentences = [
    `${style.words} of ${plain(args.subject)}`,
    composition.words,
    light,
    args.mood && `${plain(args.mood)} mood`,
    args.purpose && `made for ${plain(args.purpose)}`,
    args.avoid && `without ${plain(args.avoid)}`,
  ];
  const prompt = `${sentences.filter(Boolean).join('; ')}.`;
  return { prompt, style: style.name, composition: composition.name, light, aspect: composition.aspect };
}

/** On one line, without a full stop that would end the sentence early. @param {string} text */
function plain(text) {
  return text.replace(/\s+/g, ' ').trim().replace(/[.;]+$/, '');
}
