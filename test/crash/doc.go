// Package crash kills the real program and compares the books. A gateway of
// dingtalktest and an HTTP endpoint run in the test's process and note what was
// pushed, acknowledged, handled and sent; the daemon between them is a process of
// its own with its store in a file, and dies by SIGKILL: at random moments under
// load, and before and after every kind of write that a message's life consists of.
//
// What must hold, whenever the daemon dies:
//   - a message that was acknowledged is handled and answered;
//   - a message that a handler has seen is answered;
//   - the messages of a conversation are handled in order, one at a time, and their
//     replies leave in order;
//   - a message is handled again only if its outcome was not committed, and the
//     second try says that it is one;
//   - a reply is sent again only if the daemon died between the request and its
//     record, and the daemon says so in its log;
//   - in the end nothing is left in the store.
package crash
