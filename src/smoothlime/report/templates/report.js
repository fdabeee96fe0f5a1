/* The report: picks rows, sorts tables, draws bars. All numbers come from the element "numbers". */
"use strict";
(() => {
  const MOST_BARS = 12, PAGE = 25, MOST_OPTIONS = 1000, LONGEST_STEP = 24, ROUNDING = 1e-12;
  const data = JSON.parse(document.getElementById("numbers").textContent);

  const num = (value) => (value === null ? NaN : Number(value));

  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  const several = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;

  /* All that is said of a slope of a row; nothing where the feature has none. */
  function slope(e, row, j, largest) {
    const value = num(e.values[row][j]), std = num(e.std[j]), half = num(e.half[row][j]);
    const standardised = value * std;
    if (!Number.isFinite(standardised)) return null;
    const found = {
      j, name: e.features[j], x: num(e.x[row][j]), value, half, standardised, error: num(e.standard_error[row][j]),
      lower: (value - half) * std, upper: (value + half) * std, sure: e.is_exact || Math.abs(value) > half,
      step: e.steps === null ? "" : e.steps[row][j],
      off: e.off_data === null ? NaN : num(e.off_data[row][j]),
    };
    if (e.is_exact) {
      found.text = exactly(standardised);
      found.slopeText = exactly(value);
    } else if ((Math.abs(value) + half) * std < ROUNDING * largest) {
      const within = Math.abs(value) + half;
      found.text = `0 ± ${Bars.general(within * std, 1)}`;
      found.slopeText = `0 ± ${Bars.general(within, 1)}`;
      found.sure = false;
    } else {
      found.text = Bars.number(standardised, half * std);
      found.slopeText = Bars.number(value, half);
    }
    return found;
  }

  const exactly = (value) => Bars.signed(Bars.general(value, 6), value);

  function slopes(e, row) {
    const sizes = e.values[row].map((value, j) => Math.abs(num(value) * num(e.std[j]))).filter(Number.isFinite);
    const largest = sizes.reduce((one, other) => Math.max(one, other), 0);
    const found = e.features.map((_, j) => slope(e, row, j, largest)).filter((each) => each !== null);
    return found.sort((one, other) => Math.abs(other.standardised) - Math.abs(one.standardised) || one.j - other.j);
  }

  function switches(e, row) {
    if (e.switches === null) return [];
    const known = e.switches, found = [];
    known.effect[row].forEach((raw, s) => {
      const effect = num(raw), half = num(known.half[row][s]);
      if (!Number.isFinite(effect)) return;
      const label = `${known.features[s]}: ${known.own[row][known.column[s]]} → ${known.levels[s]}`;
      found.push({
        label, name: label, value: effect, lower: effect - half, upper: effect + half, hollow: true,
        sure: known.is_exact || Math.abs(effect) > half, column: known.column[s],
        text: known.is_exact ? exactly(effect) : Bars.number(effect, half),
      });
    });
    return found.sort((one, other) => Math.abs(other.value) - Math.abs(one.value));
  }

  function labels(each) {
    const value = Bars.valueWord(each.x);
    const brief = each.name + (value ? ` = ${value}` : "");
    const step = each.step && each.step.length <= LONGEST_STEP ? ` (${each.step})` : "";
    return { brief, label: brief + step };
  }

  function rowName(e, row) {
    return e.keys.length ? `${e.keys[row]}` : `row ${row}`;
  }

  function chartOf(e, row, isWhole) {
    const all = slopes(e, row), most = isWhole ? all.length : MOST_BARS;
    const bars = all.slice(0, most).map((each) => ({ ...each, ...labels(each), value: each.standardised, hollow: false }));
    const seen = new Set(), changes = switches(e, row);
    const chosen = isWhole ? changes : changes.filter((each) => !seen.has(each.column) && seen.add(each.column));
    const title = `${e.outputs[row]}${e.outputs.length > 1 ? `, ${rowName(e, row)}` : ""}: ${e.how[row]}`;
    return { title, bars: [...bars, ...chosen.slice(0, isWhole ? chosen.length : MOST_BARS)], left: all.length - bars.length };
  }

  /* What moved the row most, in one sentence. */
  function sentence(e, row) {
    const [first] = slopes(e, row);
    if (!first || first.standardised === 0) return "";
    if (!first.sure) return "No slope of this row has a certain sign.";
    const way = first.standardised > 0 ? "raises" : "lowers";
    const step = first.step ? ` (${first.step})` : "";
    return `The largest slope: one step up in ${first.name}${step} ${way} ${e.outputs[row]} by ${first.text.replace(/^[+-]/, "")}.`;
  }

  function notesOf(e, row, chart) {
    const notes = [];
    if (e.is_exact) notes.push("exact, no sampling");
    else notes.push(`${several(e.n_samples[row], "draw")}, ${e.confidence} intervals${e.indicative[row] ? " (indicative: few draws)" : ""}`);
    if (chart.bars.some((bar) => !bar.sure)) notes.push("grey: sign uncertain");
    if (chart.left) notes.push(`${several(chart.left, "smaller slope")} not shown`);
    if (e.n_features > e.features.length) notes.push(`the largest ${e.features.length} of ${several(e.n_features, "feature")} are in this page`);
    const names = e.missing[row].map((j) => e.features[j]);
    if (names.length) notes.push(`missing: ${names.slice(0, 6).join(", ")}${names.length > 6 ? ` and ${names.length - 6} more` : ""}`);
    return `${notes.join("; ")}.`;
  }

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
