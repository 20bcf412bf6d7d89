// expect: channel|lock|pool submit store
// Producers wait to send to a channel that one slow consumer reads.
package main

import (
	"fmt"
	"os"
	"time"
)

var jobs = make(chan int)

//go:noinline
func store(job int) {
	time.Sleep(10 * time.Millisecond)
}

//go:noinline
func submit(job int) {
	jobs <- job
}

func main() {
	time.AfterFunc(90*time.Second, func() { os.Exit(1) })
	for i := 0; i < 8; i++ {
		go func() {
			for job := i; ; job += 8 {
				submit(job)
			}
		}()
	}
	fmt.Println("ready")
	for job := range jobs {
		store(job)
	}
}
