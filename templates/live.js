
// The live part of the page: asks this server what goes on, and replaces what has changed. All text is set as text.
(function () {
  "use strict";
  var EVERY = 2000, TAIL = -12000, MOST = 200000;
  var place = document.getElementById("live-runs"), note = document.getElementById("live-note");
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
  function table(head, lines) {
    var node = make("table"), first = node.createTHead().insertRow(), body = node.createTBody();
    head.forEach(function (text) { first.appendChild(make("th", "", text)); });
    lines.forEach(function (cells) {
      var line = body.insertRow();
      cells.forEach(function (text) { line.insertCell().textContent = text; });
    });
    return node;
  }
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
    var row = { node: make("details", "live-row"), head: make("summary"), pre: make("pre", "log"),
      link: make("a", "log", "whole log"), log: null, next: TAIL, busy: false };
    row.pre.tabIndex = 0;
    row.node.append(row.head, row.pre, row.link);
    row.node.addEventListener("toggle", function () { if (row.node.open) { follow(row); } });
    return row;
  }
  function rowNode(each) {
    var row = rows[each.row] = rows[each.row] || newRow();
    row.node.dataset.row = each.row;
    row.head.textContent = [each.row, each.output, each.host, each.took].filter(Boolean).join(" · ");
    if (row.log !== each.log) {
      row.log = each.log;
      row.next = TAIL;
      row.pre.textContent = "";
    }
    row.link.hidden = !each.log;
    if (each.log) { row.link.href = each.log; }
    if (row.node.open) { follow(row); }
    return row.node;
  }
  function runNode(each) {
    var key = each.machine + " " + each.began + " " + each.command;
    var run = runs[key] = runs[key] || { node: make("div", "live-run"), head: make("h3"), told: make("p"),
      hosts: make("div"), rows: make("div") };
    var told = [each.done + " done", each.failed + " failed", each.building + " building", each.waiting + " waiting"];
    if (each.left) { told.push("about " + each.left + " left, until " + each.ends + " UTC"); }
    run.head.textContent = each.command || "a run on " + each.machine;
    run.told.textContent = told.join(", ") + "; it began " + each.began + " UTC on " + each.machine;
    run.hosts.replaceChildren(table(["host", "state", "cores", "memory", "builds"], each.hosts.map(function (host) {
      return [host.name, host.present ? "present" : "away", host.cores || "", host.memory,
        host.building + (host.jobs ? " of " + host.jobs : "")];
    })));
    arrange(run.rows, each.rows.map(rowNode));
    arrange(run.node, [run.head, run.told, run.hosts, run.rows]);
    return run.node;
  }
  function swap(fresh, selector) {
    var now = document.querySelector(selector), next = fresh.querySelector(selector);
    if (now && next) { now.replaceWith(document.adoptNode(next)); }
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
        entry.dataset.state = next.dataset.state;
        entry.dataset.words = next.dataset.words;
        entry.replaceChildren.apply(entry, Array.from(next.childNodes));
      });
      ["header p", "header .share", "#timeline"].forEach(function (selector) { swap(fresh, selector); });
      Page.apply();
    });
  }
  function show(status) {
    if (status.error) { throw new Error(status.error); }
    var nodes = status.runs.map(runNode);
    if (status.elsewhere.length) { nodes = nodes.concat(status.elsewhere.map(rowNode)); }
    arrange(place, nodes);
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
