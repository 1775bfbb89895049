// Package simulate is a simulated DingTalk to develop a bot against: the gateway and
// open API of dingtalktest, driven by lines that somebody types or that a script holds.
//
// What it promises:
//
//   - A script is read as a whole before anything is served, and every mistake in it
//     is named with its line. A mistake that is typed is named and changes nothing.
//   - What a line pushes is shown before its acknowledgement.
//   - A message that is said while no bot is connected waits for one.
//   - At most MaxOpen pushes wait for their outcome; further ones are refused.
//   - The session of a sessionWebhook is not shown, also where the bot repeats it, and
//     neither is a client secret other than the default.
//
// The times are those of the platform: an unanswered message comes again after a
// minute and is given up after another one.
package simulate
