// What a reader types: entries of lists, and versions.
function wordsOf(text) { return text.toLowerCase().split(/[^a-z0-9.]+/).filter(Boolean); }
// What an entry of a list means: the option of this name, else all with these words at the beginning of theirs.
function meant(list, text) {
  var options = Array.from(document.getElementById(list).options);
  var same = options.filter(function (option) { return option.value.toLowerCase() === text.toLowerCase(); });
  if (same.length) { return same; }
  var words = wordsOf(text);
  // RTX 3080 is the GeForce RTX 3080, and not a Ti.
  var ending = options.filter(function (option) {
    return (" " + wordsOf(option.value.split(" (")[0]).join(" ")).endsWith(" " + words.join(" "));
  });
  if (ending.length) { return ending; }
  return options.filter(function (option) {
    var own = wordsOf(option.value);
    return words.every(function (word) {
      return own.some(function (part) { return /\d$/.test(word) ? part === word || part.startsWith(word + ".") : part.startsWith(word); });
    });
  });
}
function named(options) {
  var names = options.slice(0, 3).map(function (option) { return option.value; });
  return names.join(", ") + (options.length > 3 ? " and " + (options.length - 3) + " more" : "");
}
// Of a branch alone, 535, any release may be meant.
function reaches(version, least) {
  if ((least + ".").startsWith(version + ".")) { return true; }
  var one = version.split(".").map(Number), other = least.split(".").map(Number);
  for (var at = 0; at < Math.max(one.length, other.length); at += 1) {
    var apart = (one[at] || 0) - (other[at] || 0);
    if (apart) { return apart > 0; }
  }
  return true;
}
