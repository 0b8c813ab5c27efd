// @ts-check
// The page is seen before it works: its modules are fetched once the first frame is there, all of them at once.

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
