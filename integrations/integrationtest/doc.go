// Package integrationtest is the conformance suite of connectors: what the core
// relies on, tried against a fake gateway of the platform.
//
// A platform's test starts its fake, declares what it can do, and calls [Run]:
//
//	integrationtest.Run(t, integrationtest.Env{New: newFake, Features: ...})
//
// Nothing is left out by hand. Which checks run follows from the connector's
// Profile and from the declared Features, and a declaration that the fake does
// not bear out is a failure. The checks run one after the other, for each looks
// for goroutines that it left behind; do not run them beside other tests.
package integrationtest
