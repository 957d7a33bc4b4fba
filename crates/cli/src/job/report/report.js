
for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    head.setAttribute("aria-sort", "none");
    head.tabIndex = 0;
    const sort = () => {
      // Numbers begin with the largest, texts with the first.
      const isNumber = head.className === "n";
      const before = head.getAttribute("aria-sort");
      const rises = before === "none" ? !isNumber : before === "descending";
      heads.forEach((other) => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", rises ? "ascending" : "descending");
      const value = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent;
      const body = table.tBodies[0];
      const rows = [...body.rows].sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        const order = isNumber ? Number(x) - Number(y) : x.localeCompare(y);
        return rises ? order : -order;
      });
      body.append(...rows);
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
  });
}
