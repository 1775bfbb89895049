// Package jsonscan reads JSON without building anything: it walks the members of
// an object and the elements of an array over a string, and cuts values from it.
// [AppendString] writes the one thing that is not written as it is.
//
// What it promises:
//
//   - It accepts exactly the documents that encoding/json accepts, nesting limit
//     included. What is wrong is told by [Members.Err], [Elements.Err] or [Parse];
//     members before the wrong place have been given out by then.
//   - A string without escapes is a piece of the document, not a copy, so it keeps
//     the whole document in memory. Only a string with escapes or invalid UTF-8 is
//     copied. Nothing else allocates up to 64 levels of nesting.
//   - Values convert leniently: a number may stand in a string, a truth value may
//     be a word or a digit. A value that does not convert gives the zero value.
//   - No input makes it panic, and nothing recurses, however deep the nesting.
//     Each walk reads its document once, so a caller that walks level by level
//     pays for each level: it should limit how deep it goes.
//
// There is no state beyond the iterators. Values may be used from any number of
// goroutines, an iterator from one at a time.
package jsonscan
