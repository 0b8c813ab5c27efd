// Generates one image. The provider is asked once: what it may have made is not asked for again.

// @ts-check
/// <reference path="../quarterdeck.d.ts" />
import { failure } from './failure.js';

/** @param {import('quarterdeck').Call<{ prompt: string, aspect: import('quarterdeck').Aspect }>} call */
export async function execute({ args, context }) {
  const { prompt, aspect } = args;
  context.progress('generating the image');
  const { file, provider } = await generate(context, { prompt, aspect });
  const { id, mediaType, width, height, bytes } = file;
  context.audit.log('image_generated', { file: id, provider, bytes });
  const files = [{ id, media_type: mediaType, width, height, bytes, alt: prompt }];
  return { ok: true, data: { files, provider, shown: 'The image is shown to the user below this call.' } };
}

/**
 * @param {import('quarterdeck').Context} context
 * @param {{ prompt: string, aspect: import('quarterdeck').Aspect }} request
 */
async function generate(context, request) {
  try {
    return await context.images.generate(request);
  } catch (error) {
    throw failure(error);
  }
}
