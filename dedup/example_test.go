package dedup_test

import (
	"fmt"

	"github.com/penstock-io/penstock/dedup"
)

func Example() {
	window, err := dedup.New[string](dedup.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(window.Claim("m1")) // a message comes in
	fmt.Println(window.Join("m1", func(committed bool) {
		fmt.Println("the copy learns:", committed)
	}))
	window.Commit("m1") // the message is on disk
	fmt.Println(window.Claim("m1"))
	// Output:
	// fresh
	// in flight
	// the copy learns: true
	// seen
}
