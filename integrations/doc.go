// Package integrations holds the contracts between platforms and the core, the
// [Registry] that finds a platform by name, and the [Supervisor] that keeps an
// installation connected.
//
// A [Connector] runs exactly one session and never redials; when and how the
// next session starts is the Supervisor's business alone. A session may lose its
// link at any instant: whatever was offered and not settled is then pushed again
// by the platform or lost by it, never by us.
package integrations
