// Which results of a search come first: a name that is the word itself, then titles, names that contain it, and texts.
// Of equal names, that with the shortest path comes first, and pullback.numpy before others of its length.
var Scorer = {
  score: ([, title, , , score, , kind]) =>
    kind === "object" ? score - title.split(".").length + (title.startsWith("pullback.numpy.") ? 0.5 : 0) : score,
  objNameMatch: 60,
  objPartialMatch: 6,
  objPrio: { 0: 5, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
