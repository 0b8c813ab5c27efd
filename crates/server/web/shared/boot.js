// @ts-check
// Fetches the page's modules, all at once, after the first frame is painted.

(() => {
  const main = document.currentScript?.dataset.main ?? '';
  requestAnimationFrame(() => {
    setTimeout(() => {
      const modules = document.querySelector('template[data-modules]');
      if (modules instanceof HTMLTemplateElement) document.head.append(modules.content);
      void import(main);
    });
  });
})();
