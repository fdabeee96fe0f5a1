/* What is said of a row of an explanation, from the plain data that the page was given. Text never becomes markup. */
"use strict";
const Explained = (() => {
  const MOST_BARS = 12, LONGEST_STEP = 24, ROUNDING = 1e-12;

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
    return `The largest slope: one step up in ${first.name}${stepUp(e, row, first)} ${way} ${e.outputs[row]} by ${first.text.replace(/^[+-]/, "")}.`;
  }

  /* Where a step up leads: ", from 34.4 to 44.4,"; on scales that may have no room, in the words of the table. */
  function stepUp(e, row, first) {
    if (first.step && !first.step.includes("→")) return ` (${first.step})`;
    const [from, to] = [first.x, num(e.step_up[row])].map(Bars.valueWord);
    return to && from !== to ? `, from ${from} to ${to},` : "";
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

  return { chartOf, element, exactly, notesOf, num, rowName, sentence, several, slopes, switches };
})();
