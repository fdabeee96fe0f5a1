/* The live page: asks for the row that is shown whenever something changes, and draws each look as it comes. */
"use strict";
(() => {
  const { chartOf, element, num, sentence, several } = Explained;
  const subject = JSON.parse(document.getElementById("subject").textContent);
  const at = (name) => document.getElementById(name);
  const FRAME = 70, PAUSE = 25, IDLE = 350, LATE = 400, MOST_OPTIONS = 2000;
  const state = { row: 0, changes: {}, cells: [], asked: null, own: null, sigma: subject.sigma };

  /* ---- what is asked */

  /* The slider has steps: what it was set to at first may lie between them. */
  const sigma = () => state.sigma || Number((10 ** (Number(at("sigma").value) / 2)).toPrecision(2));
  const rtol = () => Number((10 ** Number(at("rtol").value)).toPrecision(2));

  function question() {
    return { row: state.row, changes: state.changes, sigma: sigma(), scale: at("scale").value,
      method: at("method").value, target: subject.outputs.length > 1 ? at("target").value : null, rtol: rtol() };
  }

  /* Ask for something; lines of the answer go to `each` as they come. */
  async function ask(what, body, signal, each) {
    const answer = await fetch(what, { method: "POST", signal, body: JSON.stringify(body),
      headers: { "Content-Type": "application/json" } });
    if (!answer.ok) {
      const said = await answer.json().catch(() => null);
      throw new Error(said && said.error ? said.error : `the server answered ${answer.status}`);
    }
    const reader = answer.body.getReader(), decoder = new TextDecoder();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        if (!line) continue;
        const said = JSON.parse(line);
        if (said.error) throw new Error(said.error);
        each(said);
      }
    }
  }

  /* ---- the answer, look by look; a look stays for a moment, so that eyes can follow */

  const frames = [];
  let isShowing = false;

  function show(frame) {
    frames.push(frame);
    if (!isShowing) next();
  }

  function next() {
    const frame = frames.shift();
    isShowing = frame !== undefined;
    if (!isShowing) return;
    frame();
    setTimeout(next, frames.length > 12 ? 0 : FRAME);
  }

  function drawLook(look) {
    at("bars").classList.remove("waiting");
    const bars = look.features.map((name, k) => {
      const value = num(look.values[0][k]), half = num(look.half[0][k]), std = num(look.std[k]);
      const cell = state.cells[look.columns[k]];
      const word = typeof cell === "number" ? Bars.valueWord(cell) : "";
      return { name, label: name + (word ? ` = ${word}` : ""), value: value * std, lower: (value - half) * std,
        upper: (value + half) * std, sure: Math.abs(value) > half, text: Bars.number(value * std, half * std), hollow: false };
    });
    bars.sort((one, other) => Math.abs(other.value) - Math.abs(one.value));
    Bars.keep(at("bars"), { title: "So far", bars: bars.slice(0, 12) });
    follow(look.n_samples[0], num(look.radius[0]), num(look.tolerance[0]));
  }

  function follow(n, radius, tolerance) {
    at("progress").textContent = `${several(n, "draw")}, error ${Bars.general(radius, 2)}, allowed ${Bars.general(tolerance, 2)}`;
    at("meter").style.width = `${Math.min(100, (100 * tolerance) / Math.max(radius, tolerance))}%`;
  }

  function drawAnswer({ done, warnings, method, design }) {
    at("bars").classList.remove("waiting");
    at("told").textContent = `${done.outputs[0]}: ${done.how[0]}`;
    at("sentence").textContent = [changeOf(done), sentence(done, 0)].filter(Boolean).join(" ");
    Bars.keep(at("bars"), chartOf(done, 0, false));
    const draws = done.is_exact ? "exact, nothing drawn" :
      `${several(done.n_samples[0], "draw")}, error ${Bars.general(num(done.radius[0]), 2)}${done.converged[0] ? "" : ", not within what is allowed"}`;
    at("progress").textContent = done.is_exact ? draws : `${method}${design === method ? "" : `, ${design} draws`}: ${draws}`;
    at("meter").style.width = done.is_exact || done.converged[0] ? "100%" : at("meter").style.width;
    at("warnings").replaceChildren(...warnings.map((text) => element("li", { class: "warn" }, text)));
    document.body.dataset.answered = String(Number(document.body.dataset.answered || 0) + 1);
  }

  /* What the changes do to the prediction, once the row's own is known. */
  function changeOf(done) {
    const now = num(done.prediction[0]);
    if (!Object.keys(state.changes).length) {
      state.own = { row: state.row, output: done.outputs[0], prediction: now };
      return "";
    }
    if (!state.own || state.own.row !== state.row || state.own.output !== done.outputs[0]) return "";
    const moved = now - state.own.prediction;
    return `Your changes move it from ${Bars.general(state.own.prediction, 4)} to ${Bars.general(now, 4)} (${Bars.signed(Bars.general(moved, 3), moved)}).`;
  }

  function complain(text) {
    at("told").textContent = "–"; // what stands there is of another question
    at("sentence").textContent = "";
    at("warnings").replaceChildren();
    at("error").textContent = text;
    at("error").hidden = false;
    at("bars").classList.add("waiting");
    at("progress").textContent = "";
  }

  /* What is shown is of the question before. */
  function wait() {
    at("bars").classList.add("waiting");
    at("progress").textContent = "asking the model …";
  }

  let waiting = 0;

  /* Something changed: forget what was asked before, and ask anew. */
  function update() {
    describe();
    clearTimeout(waiting);
    waiting = setTimeout(start, PAUSE);
  }

  async function start() {
    if (state.asked) state.asked.abort();
    const asked = (state.asked = new AbortController());
    const body = question();
    frames.length = 0;
    for (const name of ["verdict", "pair", "parts-said", "parts", "pairs-said", "pairs"]) at(name).classList.add("waiting");
    const isCurrent = () => state.asked === asked;
    const late = setTimeout(() => isCurrent() && wait(), LATE);
    document.body.dataset.asked = String(Date.now());
    try {
      await ask("explain", body, asked.signal, (said) => {
        clearTimeout(late);
        if (!isCurrent()) return;
        at("error").hidden = true;
        show(() => isCurrent() && (said.look ? drawLook(said.look) : drawAnswer(said)));
      });
      await new Promise((after) => setTimeout(after, IDLE));
      if (isCurrent()) await aside("verdict", () => compare(body, asked.signal));
      if (isCurrent()) await aside("parts-said", () => further("parts", "contributions", body, asked.signal));
      if (isCurrent()) await aside("pairs-said", () => further("pairs", "interactions", body, asked.signal));
    } catch (error) {
      clearTimeout(late);
      if (isCurrent() && error.name !== "AbortError") {
        frames.length = 0;
        const isGone = error instanceof TypeError;
        complain(isGone ? "The server does not answer. Is smoothlime still running?" : error.message);
      }
    }
  }

  /* Further answers: what goes wrong with one of them stands in its own place. */
  async function aside(where, answer) {
    try {
      await answer();
    } catch (error) {
      if (error.name === "AbortError" || error instanceof TypeError) throw error;
      at(where).textContent = error.message;
      at(where).className = "soft";
      if (where === "verdict") at("pair").hidden = true;
    }
  }

  /* ---- the two methods, side by side */

  async function compare(body, signal) {
    await ask("compare", body, signal, (said) => {
      at("pair").hidden = said.compared === null;
      at("pair").classList.remove("waiting");
      const verdict = at("verdict");
      if (said.compared === null) {
        verdict.textContent = `There is nothing to compare: ${said.why}`;
        verdict.className = "soft";
        return;
      }
      verdict.textContent = `${said.verdict} (${several(said.draws, "draw")})`;
      verdict.className = said.agrees === true ? "verdict-yes" : said.agrees === false ? "verdict-no" : "soft";
      const charts = ["smoothgrad", "clime"].map((name) => chartOf(said.compared[name], 0, false));
      const scale = Bars.axisOf(charts.flatMap((chart) => chart.bars));
      ["smoothgrad", "clime"].forEach((name, k) => Bars.keep(at(name), { ...charts[k], scale }));
    });
  }

  /* ---- contributions, interactions: bars, and a sentence above them */

  async function further(where, what, body, signal) {
    await ask(what, body, signal, (said) => {
      at(`${where}-said`).textContent = said.said;
      at(`${where}-said`).classList.remove("waiting");
      at(where).classList.remove("waiting");
      const bars = said.bars.map((bar) => ({ ...bar, lower: num(bar.lower), upper: num(bar.upper) }));
      Bars.keep(at(where), { title: said.said, bars });
    });
  }

  /* ---- controls */

  function describe() {
    at("sigma-said").textContent = String(sigma());
    at("rtol-said").textContent = `${Number((100 * rtol()).toPrecision(2))}%`;
    at("before").disabled = state.row === 0;
    at("after").disabled = state.row === subject.rows - 1;
    at("reset").disabled = !Object.keys(state.changes).length;
  }

  function field(column, j, cell) {
    const said = element("output", {}, "");
    const label = element("label", {}, element("span", {}, column.name), said);
    const change = (value) => {
      state.changes[column.name] = value;
      state.cells[j] = value;
      label.classList.add("changed");
      say(value);
      update();
    };
    const say = (value) => { said.textContent = typeof value === "number" ? Bars.valueWord(value) : ""; };
    if (column.levels.length) {
      const select = element("select", {}, ...column.levels.map((level) => element("option", { value: level }, level)));
      if (cell === null) select.prepend(element("option", { value: "", disabled: "" }, "missing"));
      select.value = cell === null ? "" : cell;
      select.addEventListener("change", () => change(select.value));
      label.append(select);
    } else if (column.is_number) {
      const low = cell === null ? column.least : Math.min(column.least, cell);
      const high = cell === null ? column.largest : Math.max(column.largest, cell);
      const slider = element("input", { type: "range", min: low, max: high, step: "any" });
      slider.value = String(cell === null ? (low + high) / 2 : cell);
      slider.addEventListener("input", () => change(Number((Math.round(slider.value / column.step) * column.step).toPrecision(10))));
      slider.addEventListener("keydown", (event) => {
        const way = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
        if (!way) return;
        event.preventDefault();
        slider.value = String(Math.round(slider.value / column.step + way) * column.step);
        change(Number(Number(slider.value).toPrecision(10)));
      });
      label.append(slider);
      say(cell === null ? "missing" : cell);
      if (cell === null) said.textContent = "missing";
    } else {
      said.textContent = cell === null ? "missing" : typeof cell === "number" ? Bars.valueWord(cell) : cell;
    }
    return label;
  }

  async function pick(row) {
    state.row = row;
    state.changes = {};
    at("row").value = String(row);
    try {
      const answer = await fetch(`rows/${row}`);
      const said = await answer.json();
      if (state.row !== row) return;
      if (!answer.ok) throw new Error(said.error);
      state.cells = said.cells;
      at("features").replaceChildren(...subject.columns.map((column, j) => field(column, j, said.cells[j])));
    } catch (error) {
      complain(error instanceof TypeError ? "The server does not answer. Is smoothlime still running?" : error.message);
    }
    update();
  }

  async function download() {
    try {
      const answer = await fetch("report", { method: "POST", body: JSON.stringify(question()), headers: { "Content-Type": "application/json" } });
      if (!answer.ok) throw new Error((await answer.json()).error);
      const link = element("a", { href: URL.createObjectURL(await answer.blob()), download: "report.html" });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    } catch (error) {
      complain(error.message);
    }
  }

  if (subject.rows > MOST_OPTIONS) {
    at("row").replaceWith(element("input", { id: "row", type: "number", min: 0, max: subject.rows - 1 }));
  } else {
    at("row").replaceChildren(...Array.from({ length: subject.rows }, (_, row) =>
      element("option", { value: row }, subject.keys.length ? subject.keys[row] : `row ${row}`)));
  }
  at("target").replaceChildren(...subject.outputs.map((name) => element("option", { value: name }, name)));
  at("target-label").hidden = subject.outputs.length < 2;
  if (subject.target !== null) at("target").value = subject.target;
  at("scale").value = subject.scale;
  const place = 2 * Math.log10(subject.sigma);
  if (place < Number(at("sigma").min) || place > Number(at("sigma").max)) {
    at("sigma").min = String(place - 2);
    at("sigma").max = String(place + 2);
  }
  at("sigma").value = String(place);
  at("rtol").value = String(Math.log10(0.01));
  at("row").addEventListener("change", () => pick(Math.min(Math.max(0, Math.round(Number(at("row").value)) || 0), subject.rows - 1)));
  at("before").addEventListener("click", () => pick(state.row - 1));
  at("after").addEventListener("click", () => pick(state.row + 1));
  at("reset").addEventListener("click", () => pick(state.row));
  at("report").addEventListener("click", download);
  at("settings").addEventListener("submit", (event) => event.preventDefault());
  at("sigma").addEventListener("input", () => { state.sigma = 0; });
  for (const name of ["sigma", "rtol"]) at(name).addEventListener("input", update);
  for (const name of ["scale", "method", "target"]) at(name).addEventListener("change", update);
  pick(0);
})();
