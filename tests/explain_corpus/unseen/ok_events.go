// expect: none
// Sources send events to a writer by a channel; each comes at its own pace, and is written at once.
package main

import (
	"fmt"
	"io"
	"time"
)

//go:noinline
func source(pace time.Duration, events chan<- string) {
	for n := 0; ; n++ {
		time.Sleep(pace)
		events <- fmt.Sprintf("event %d", n)
	}
}

//go:noinline
func writeAll(events <-chan string) {
	for event := range events {
		fmt.Fprintf(io.Discard, "%s %d\n", event, len(event))
	}
}

func main() {
	time.AfterFunc(90*time.Second, func() { panic("over") })
	events := make(chan string)
	for i := 1; i <= 6; i++ {
		go source(time.Duration(i)*7*time.Millisecond, events)
	}
	fmt.Println("ready")
	writeAll(events)
}
