// Package edge tests the gateway for consumers as bots see it: on the vendor's own
// SDKs, each in a process of its own, behind a whole service that hangs on a
// simulated gateway of the vendor.
package edge
