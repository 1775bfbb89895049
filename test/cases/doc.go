// Package cases holds the test that replays recorded and reported faults, one file
// each, against a whole service. See ../testdata/cases for the files.
//
// A file says what comes in (input) and what is expected of the service (expect).
// Each kind of file has a way to be played, each key of expect a checker; both read
// the file's values, so that a new file needs no code. A key, a word or a step that
// no checker knows fails the test: nothing passes by not being looked at.
package cases
