// The filter of the matrix; a page without scripts shows all of it, and no form.
(() => {
  const form = document.getElementById("filter");
  const rows = [...document.querySelectorAll(".matrix tr[data-op]")];
  const apply = () => {
    const family = form.family.value, verdict = form.verdict.value, text = form.text.value.trim().toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const { family: of, op, verdicts } = row.dataset;
      row.hidden = (family && of !== family) || (verdict && !verdicts.split(" ").includes(verdict)) ||
        (text && !op.toLowerCase().includes(text));
      shown += !row.hidden;
    }
    for (const body of document.querySelectorAll(".matrix tbody"))
      body.hidden = ![...body.rows].some(row => row.dataset.op && !row.hidden);
    form.querySelector("output").textContent = `${shown} of ${rows.length} ops`;
  };
  form.hidden = false;
  form.addEventListener("input", apply);
  form.addEventListener("submit", event => event.preventDefault());
  apply();
})();
