
// An address may name an entry, which is opened.
(function () {
  "use strict";
  if (location.hash) { Page.open(decodeURIComponent(location.hash.slice(1))); }
  Page.apply();
}());
