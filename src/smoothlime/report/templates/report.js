/* The report: picks rows, sorts tables, draws bars. All numbers come from the element "numbers". */
"use strict";
(() => {
  const PAGE = 25, MOST_OPTIONS = 1000;
  const { chartOf, element, notesOf, num, rowName, sentence, several, slopes } = Explained;
  const data = JSON.parse(document.getElementById("numbers").textContent);

  /* A table whose heads sort it. Columns: key (of a number or a text), and whether large ones come first. */
  function sortable(table, refill) {
    const heads = [...table.querySelectorAll("thead th[data-key]")];
    const state = { key: "", down: true };
    for (const head of heads) {
      const button = element("button", { type: "button", class: "sort" }, head.textContent);
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const key = head.dataset.key;
        state.down = state.key === key ? !state.down : head.classList.contains("number");
        state.key = key;
        for (const each of heads) each.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
        refill();
      });
    }
    return state;
  }

  function compare(state, valueOf) {
    const turn = state.down ? -1 : 1;
    return (one, other) => {
      const a = valueOf(one, state.key), b = valueOf(other, state.key);
      if (typeof a === "string") return turn * a.localeCompare(b, "en", { numeric: true });
      if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
      return turn * (a - b);
    };
  }

  function cell(text, isNumber) {
    return element("td", isNumber ? { class: "number" } : {}, text);
  }

  const share = (value) => (Number.isFinite(value) ? `${(100 * value).toFixed(0)}%` : "–");
  const four = (value) => (Number.isFinite(value) ? Bars.general(value, 4) : "–");

  function show(e, section) {
    const find = (name) => section.querySelector(`[data-part="${name}"]`);
    const rows = e.prediction.length;
    const texts = e.outputs.map((output, row) =>
      [rowName(e, row), row, output, ...(e.switches ? e.switches.own[row] : [])].join(" ").toLowerCase());
    const every = e.prediction.map((_, row) => row);
    const state = { row: 0, page: 0, isWhole: false, matches: every };
    const table = find("features");
    const sort = table && sortable(table, fillFeatures);
    const rowTable = find("rows");
    const sortRows = rowTable && sortable(rowTable, () => { state.page = 0; fillRows(); });

    function pick(row) {
      state.row = row;
      const chart = chartOf(e, row, state.isWhole);
      find("title").textContent = chart.title;
      find("sentence").textContent = sentence(e, row);
      find("notes").textContent = notesOf(e, row, chart);
      Bars.keep(find("chart"), chart);
      fillFeatures();
      const more = find("more");
      more.hidden = !state.isWhole && !chart.left && chartOf(e, row, true).bars.length === chart.bars.length;
      more.textContent = state.isWhole ? "Show the largest only" : "Show all";
      if (rows > 1) {
        find("picker").value = String(row);
        const place = state.matches.indexOf(row);
        find("before").disabled = place <= 0;
        find("after").disabled = place < 0 || place === state.matches.length - 1;
        fillRows();
      }
    }

    function fillFeatures() {
      const found = slopes(e, state.row);
      const valueOf = (each, key) => ({ name: each.name, x: each.x, value: each.value, standardised: each.standardised,
        error: each.error, step: each.step, off: each.off })[key];
      if (sort.key) found.sort(compare(sort, valueOf));
      table.tBodies[0].replaceChildren(...found.map((each) => {
        const line = element("tr", each.sure ? {} : { class: "open" });
        line.append(element("th", { scope: "row" }, each.name), cell(Bars.valueWord(each.x) || "–", true));
        if (e.steps !== null) line.append(cell(each.step || "–"));
        line.append(cell(each.slopeText, true), cell(each.text, true), cell(e.is_exact ? "0" : four(each.error), true));
        if (e.off_data !== null) line.append(cell(share(each.off), true));
        return line;
      }));
    }

    function rowValue(row, key) {
      if (key === "row") return e.keys.length ? e.keys[row] : row;
      if (key === "output") return e.outputs[row];
      if (key === "radius" && e.is_exact) return 0;
      return num(e[key][row]);
    }

    function fillRows() {
      const ordered = sortRows.key ? [...state.matches].sort(compare(sortRows, rowValue)) : state.matches;
      const last = Math.max(0, Math.ceil(ordered.length / PAGE) - 1);
      state.page = Math.min(state.page, last);
      const shown = ordered.slice(state.page * PAGE, (state.page + 1) * PAGE);
      const hasOutputs = rowTable.querySelector('th[data-key="output"]') !== null;
      rowTable.tBodies[0].replaceChildren(...shown.map((row) => {
        const button = element("button", { type: "button", class: "link" }, e.keys.length ? e.keys[row] : String(row));
        button.addEventListener("click", () => {
          pick(row);
          find("one").scrollIntoView({ block: "start" });
          find("one").focus({ preventScroll: true });
        });
        const line = element("tr", row === state.row ? { class: "picked", "aria-current": "true" } : {});
        line.append(element("th", { scope: "row" }, button));
        if (hasOutputs) line.append(cell(e.outputs[row]));
        line.append(cell(four(num(e.prediction[row])), true), cell(four(num(e.smoothed[row])), true));
        line.append(cell(share(num(e.fidelity[row])), true));
        line.append(cell(e.is_exact ? "0" : four(num(e.radius[row])) + (e.converged[row] ? "" : " *"), true));
        line.append(cell(e.n_samples[row].toLocaleString("en"), true));
        line.append(cell(slopes(e, row).slice(0, 3).map((each) => `${each.name} ${each.text}`).join("; ") || "–"));
        return line;
      }));
      find("pages").hidden = last === 0;
      find("page").textContent = `Page ${state.page + 1} of ${last + 1}`;
      find("page-before").disabled = state.page === 0;
      find("page-after").disabled = state.page === last;
    }

    function fillPicker() {
      const shown = state.matches.slice(0, MOST_OPTIONS);
      if (!shown.includes(state.row) && state.matches.length) shown.push(state.row);
      find("picker").replaceChildren(...shown.map((row) =>
        element("option", { value: row }, `${rowName(e, row)}: ${e.outputs[row]}, f(x) = ${four(num(e.prediction[row]))}`)));
    }

    function search() {
      const words = find("search").value.toLowerCase().split(/\s+/).filter(Boolean);
      state.matches = words.length ? every.filter((row) => words.every((word) => texts[row].includes(word))) : every;
      state.page = 0;
      const found = state.matches.length;
      find("found").textContent = words.length ? (found ? `${found.toLocaleString("en")} of ${several(rows, "row")}` : "No row matches") : "";
      if (found && !state.matches.includes(state.row)) state.row = state.matches[0];
      fillPicker();
      pick(state.row);
    }

    function step(by) {
      pick(state.matches[state.matches.indexOf(state.row) + by]);
    }

    find("more").addEventListener("click", () => { state.isWhole = !state.isWhole; pick(state.row); });
    if (rows > 1) {
      find("search").addEventListener("input", search);
      find("picker").addEventListener("change", (event) => pick(Number(event.target.value)));
      find("before").addEventListener("click", () => step(-1));
      find("after").addEventListener("click", () => step(1));
      find("page-before").addEventListener("click", () => { state.page -= 1; fillRows(); });
      find("page-after").addEventListener("click", () => { state.page += 1; fillRows(); });
      fillPicker();
    }
    for (const each of section.querySelectorAll("[data-scripted]")) each.hidden = false;
    if (rows > 1) fillRows(); // before anything is measured: laying out the whole table would take long
    pick(0);
    if (e.effects !== null) Bars.keep(find("effects"), withNumbers(e.effects));
  }

  function withNumbers(chart) {
    return { ...chart, bars: chart.bars.map((bar) => ({ ...bar, value: num(bar.value), lower: num(bar.lower), upper: num(bar.upper) })) };
  }

  data.explanations.forEach((e, k) => show(e, document.getElementById(`explanation-${k}`)));
})();
