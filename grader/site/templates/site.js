// Sorts and filters tables of class "sortable". Without this script the pages show the same rows, in a fixed order.
"use strict";
const FEW = 12; // a table with fewer rows fits on a screen and gets no filter
function makeSortable(part) {
  for (const table of part.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    const value = (row, column) => {
      const cell = row.cells[column];
      const text = (cell.dataset.value ?? cell.textContent).trim();
      const number = Number(text.replace(/[,%×]/g, ""));
      return text === "" || text === "–" ? null : Number.isNaN(number) ? text.toLowerCase() : number;
    };
    const compare = (a, b) =>
      typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true });
    [...table.tHead.rows[0].cells].forEach((header, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => {
        const descending = header.getAttribute("aria-sort") === "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        header.setAttribute("aria-sort", descending ? "descending" : "ascending");
        const rows = [...body.rows].map((row) => [value(row, column), row]);
        rows.sort(([a], [b]) => {
          if (a === null || b === null) return (a === null) - (b === null); // unknown values stay at the end
          return descending ? compare(b, a) : compare(a, b);
        });
        body.append(...rows.map(([, row]) => row));
      });
    });
    if (body.rows.length < FEW) continue;
    const label = document.createElement("label");
    const input = document.createElement("input");
    const count = document.createElement("span");
    input.type = "search";
    count.className = "dim";
    count.setAttribute("role", "status");
    label.append("Filter ", input);
    const bar = document.createElement("div");
    bar.className = "filter";
    bar.append(label, count);
    (table.closest(".scroll") ?? table).before(bar);
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of body.rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        shown += !row.hidden;
      }
      count.textContent = words.length ? `${shown} of ${body.rows.length} rows` : "";
    });
  }
}
makeSortable(document);
