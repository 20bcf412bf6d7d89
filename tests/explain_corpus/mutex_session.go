// expect: lock lookup evict
// Request goroutines look sessions up; one goroutine holds the mutex while it evicts old ones slowly.
package main

import (
	"fmt"
	"os"
	"sync"
	"time"
)

var (
	mutex    sync.Mutex
	sessions = map[int]string{}
)

//go:noinline
func evict() {
	mutex.Lock()
	defer mutex.Unlock()
	time.Sleep(60 * time.Millisecond)
	delete(sessions, 1)
}

//go:noinline
func lookup(number int) string {
	mutex.Lock()
	defer mutex.Unlock()
	return sessions[number]
}

func main() {
	time.AfterFunc(90*time.Second, func() { os.Exit(1) })
	for i := 0; i < 6; i++ {
		go func() {
			for {
				lookup(i)
				time.Sleep(time.Millisecond)
			}
		}()
	}
	fmt.Println("ready")
	for {
		evict()
		time.Sleep(5 * time.Millisecond)
	}
}
