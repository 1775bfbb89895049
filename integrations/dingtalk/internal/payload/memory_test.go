package payload_test

import "unsafe"

// shares tells whether part is a piece of whole's memory.
func shares(whole, part string) bool {
	start := uintptr(unsafe.Pointer(unsafe.StringData(whole)))
	at := uintptr(unsafe.Pointer(unsafe.StringData(part)))
	return at >= start && at < start+uintptr(len(whole))
}
