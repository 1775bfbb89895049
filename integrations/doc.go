// Package integrations holds the contracts between platforms and the core, the
// [Registry] that finds a platform by name, and the [Supervisor] that keeps an
// installation connected.
//
// A [Connector] runs exactly one session and never redials; when and how the
// next session starts is the Supervisor's business alone. A session may lose its
// link at any instant: whatever was offered and not settled is then pushed again
// by the platform or lost by it, never by us.
//
// What the Supervisor promises: it never gives up except where a person is needed
// (another client took the session), it opens at most two sockets, and sessions
// that prove nothing are opened at most 30 times in ten minutes, whatever they
// end with. All Supervisors of a process share a [Pacer], so that a cut of all
// sessions is not a storm of dials.
//
// Package integrationtest tries every Connector against what is said here.
package integrations
