
// The live part of the page: asks this server what goes on, and replaces what has changed. All text is set as text.
(function () {
  "use strict";
  var HOSTS = ["host", "state", "cores", "memory", "builds"];
  var EVERY = 2000, TAIL = -12000, MOST = 200000;
  var place = document.getElementById("live-runs"), note = document.getElementById("live-note");
  // A screen reader hears of what ended, at most so often in milliseconds.
  var SAID_EVERY = 15000, said = document.getElementById("live-said"), saidAt = 0, counts = "";
  var version = null, rows = {}, runs = {};
  function make(tag, name, text) {
    var node = document.createElement(tag);
    if (name) { node.className = name; }
    if (text !== undefined) { node.textContent = text; }
    return node;
  }
  // Children that stay are not touched, so that nobody loses what they read or selected.
  function arrange(parent, children) {
    var now = Array.from(parent.childNodes);
    var same = now.length === children.length && now.every(function (node, at) { return node === children[at]; });
    if (!same) { parent.replaceChildren.apply(parent, children); }
  }
  function read(address) {
    return fetch(address, { cache: "no-store", credentials: "omit" }).then(function (answer) {
      if (!answer.ok) { throw new Error("the server answers " + answer.status); }
      return answer;
    });
  }
  function role(node, name) { node.setAttribute("role", name); return node; }
  function set(node, text) { if (node.textContent !== String(text)) { node.textContent = text; } }
  // A narrow page breaks a name after its underscores, and a command between its words.
  function setName(node, text) {
    if (node.textContent === text) { return; }
    node.replaceChildren();
    text.split("_").forEach(function (part, at) {
      if (at) { node.append("_", document.createElement("wbr")); }
      node.append(part);
    });
  }
  function setWords(node, text) {
    if (node.textContent === text) { return; }
    node.replaceChildren();
    text.split(" ").forEach(function (word, at) { node.append(at ? " " : "", make("span", "word", word)); });
  }
  // A table that is a list of cards on a phone, and stays a table for a screen reader.
  function table(name, head) {
    var node = role(make("table", "cards"), "table"), first = role(role(node.createTHead(), "rowgroup").insertRow(), "row");
    node.setAttribute("aria-label", name);
    head.forEach(function (text) {
      var cell = role(make("th", "", text), "columnheader");
      cell.scope = "col";
      first.appendChild(cell);
    });
    role(node.createTBody(), "rowgroup");
    return node;
  }
  // Only what has changed is written, so that nobody loses a selection.
  function fill(node, head, lines) {
    var body = node.tBodies[0];
    while (body.rows.length > lines.length) { body.deleteRow(-1); }
    lines.forEach(function (cells, at) {
      var line = body.rows[at] || role(body.insertRow(), "row");
      cells.forEach(function (text, place) {
        var cell = line.cells[place] || role(line.insertCell(), "cell");
        cell.dataset.label = head[place];
        set(cell, text);
      });
    });
  }
  function plural(number, what) { return number + " " + what + (number === 1 ? "" : "s"); }
  function follow(row) {
    if (!row.log || row.busy) { return; }
    row.busy = true;
    read(row.log + "?from=" + row.next).then(function (answer) { return answer.json(); }).then(function (piece) {
      var pre = row.pre, atEnd = pre.scrollTop + pre.clientHeight >= pre.scrollHeight - 4;
      row.next = piece.next;
      if (!piece.text) { return; }
      pre.textContent = (pre.textContent + piece.text).slice(-MOST);
      if (atEnd) { pre.scrollTop = pre.scrollHeight; }
    }).catch(function () {}).then(function () { row.busy = false; });
  }
  function newRow() {
    var row = { node: make("details", "live-row"), head: make("summary", "columns"), pre: make("pre", "log"),
      title: make("span", "title"), what: make("span", "soft"), took: make("span", "soft number"),
      more: make("div", "more"), link: make("a", "log", "whole log"), log: null, next: TAIL, busy: false };
    role(row.pre, "region").tabIndex = 0;
    row.head.append(row.title, row.what, row.took);
    row.more.append(row.pre, row.link);
    row.node.append(row.head, row.more);
    row.node.addEventListener("toggle", function () { if (row.node.open) { follow(row); } });
    return row;
  }
  function rowNode(each) {
    var row = rows[each.row] = rows[each.row] || newRow();
    row.node.dataset.row = each.row;
    row.pre.setAttribute("aria-label", "End of the log of " + each.row);
    setName(row.title, each.row);
    set(row.what, [each.output, each.host].filter(Boolean).join(" on "));
    set(row.took, each.took || "");
    if (row.log !== each.log) {
      row.log = each.log;
      row.next = TAIL;
      row.pre.textContent = "";
    }
    row.link.hidden = !each.log;
    row.link.setAttribute("aria-label", "whole log of " + each.row);
    if (each.log) { row.link.href = each.log; }
    if (row.node.open) { follow(row); }
    return row.node;
  }
  function runNode(each) {
    var key = each.machine + " " + each.began + " " + each.command;
    var run = runs[key] = runs[key] || { node: make("div", "live-run"), head: make("h3"), left: make("p", "left"),
      bar: make("progress"), told: make("p", "soft"), hosts: table("Hosts", HOSTS), rows: make("div") };
    var all = each.done + each.failed + each.building + each.waiting;
    setWords(run.head, each.command || "a run on " + each.machine);
    set(run.left, each.left ? "about " + each.left + " left, until " + each.ends + " UTC" : "");
    run.left.hidden = !each.left;
    run.bar.max = all || 1;
    run.bar.value = each.done + each.failed;
    run.bar.setAttribute("aria-label", "rows that ended");
    set(run.told, [each.done + " done", each.failed + " failed", each.building + " building", each.waiting + " waiting"]
      .join(", ") + "; it began " + each.began + " UTC on " + each.machine);
    fill(run.hosts, HOSTS, each.hosts.map(function (host) {
      return [host.name, host.present ? "present" : "away", host.cores || "", host.memory,
        host.building + (host.jobs ? " of " + host.jobs : "")];
    }));
    arrange(run.rows, each.rows.map(rowNode));
    arrange(run.node, [run.head, run.left, run.bar, run.told, run.hosts, run.rows]);
    return run.node;
  }
  function swap(fresh, selector) {
    var now = document.querySelector(selector), next = fresh.querySelector(selector);
    if (now && next && now.outerHTML !== next.outerHTML) { now.replaceWith(document.adoptNode(next)); }
  }
  // The picture, which is there after the first build; its place in the page's width stays.
  function swapPicture(fresh) {
    var now = document.querySelector(".timeline"), next = fresh.querySelector(".timeline");
    if (!now && next) { document.querySelector(".matrix").before(document.adoptNode(next)); return; }
    if (now && !now.contains(document.activeElement)) { swap(fresh, "#timeline"); }
  }
  // The numbers at the filter; what is pressed stays pressed.
  function swapChips(fresh) {
    var pressed = Array.from(document.querySelectorAll(".chip[aria-pressed='true']"), function (chip) { return chip.dataset.state; });
    var at = document.activeElement.dataset ? document.activeElement.dataset.state : null;
    fresh.querySelectorAll(".chip[data-state]").forEach(function (chip) {
      chip.setAttribute("aria-pressed", String(pressed.includes(chip.dataset.state)));
    });
    swap(fresh, ".chips");
    var again = at && document.querySelector('.chip[data-state="' + at + '"]');
    if (again) { again.focus({ preventScroll: true }); }
  }
  // What is new in an entry; the focus stays on it, and its logs at their place.
  function swapEntry(entry, next) {
    entry.dataset.state = next.dataset.state;
    entry.dataset.words = next.dataset.words;
    if (entry.innerHTML === next.innerHTML) { return; }
    var held = entry.contains(document.activeElement);
    var tops = Array.from(entry.querySelectorAll("pre.log"), function (log) { return log.scrollTop; });
    entry.replaceChildren.apply(entry, Array.from(next.childNodes));
    entry.querySelectorAll("pre.log").forEach(function (log, at) { log.scrollTop = tops[at] || 0; });
    if (held) { entry.querySelector("summary").focus({ preventScroll: true }); }
  }
  function refresh() {
    return read("./").then(function (answer) { return answer.text(); }).then(function (text) {
      var fresh = new DOMParser().parseFromString(text, "text/html");
      var entries = Array.from(document.querySelectorAll(".configuration"));
      var same = fresh.querySelectorAll(".configuration").length === entries.length &&
        entries.every(function (entry) { return fresh.getElementById(entry.id); });
      if (!same) { location.reload(); return; }
      entries.forEach(function (entry) {
        var next = fresh.getElementById(entry.id);
        swapEntry(entry, next);
      });
      ["header p", "header .share"].forEach(function (selector) { swap(fresh, selector); });
      swapPicture(fresh);
      swapChips(fresh);
      Page.apply();
    });
  }
  function announce(status) {
    var now = status.runs.map(function (run) { return plural(run.done, "row") + " done, " + run.failed + " failed"; }).join("; ");
    if (now === counts || Date.now() - saidAt < SAID_EVERY) { return; }
    if (counts || now) { said.textContent = now || "No run builds now."; }
    counts = now;
    saidAt = Date.now();
  }
  function show(status) {
    if (status.error) { throw new Error(status.error); }
    var nodes = status.runs.map(runNode);
    if (status.elsewhere.length) { nodes = nodes.concat(status.elsewhere.map(rowNode)); }
    arrange(place, nodes);
    announce(status);
    note.textContent = "Nothing is being built.";
    note.hidden = nodes.length > 0;
    document.getElementById("live-at").textContent = status.at.slice(0, 19).replace("T", " ") + " UTC";
    var changed = version !== null && version !== status.version;
    version = status.version;
    return changed ? refresh() : null;
  }
  function poll() {
    read("status.json").then(function (answer) { return answer.json(); }).then(show).catch(function (error) {
      note.textContent = "This is the last state that was read: " + error.message;
      note.hidden = false;
    }).then(function () { setTimeout(poll, EVERY); });
  }
  poll();
}());
