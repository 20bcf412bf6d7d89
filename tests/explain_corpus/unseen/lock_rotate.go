// expect: lock logLine rotate
// Handlers write to a log under a mutex; the log is compressed under the same mutex.
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"sync"
	"time"
)

var (
	guard sync.Mutex
	lines bytes.Buffer
)

//go:noinline
func logLine(text string) {
	guard.Lock()
	defer guard.Unlock()
	lines.WriteString(text)
	if lines.Len() > 1<<20 {
		lines.Truncate(1 << 19)
	}
}

//go:noinline
func rotate() {
	guard.Lock()
	defer guard.Unlock()
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	for i := 0; i < 3; i++ {
		writer.Write(lines.Bytes())
	}
	writer.Close()
}

func main() {
	time.AfterFunc(90*time.Second, func() { panic("over") })
	for i := 0; i < 5; i++ {
		go func() {
			for n := 0; ; n++ {
				logLine(fmt.Sprintf("request %d took %d ms\n", n, n%17))
				time.Sleep(time.Millisecond)
			}
		}()
	}
	go func() {
		for {
			rotate()
			time.Sleep(10 * time.Millisecond)
		}
	}()
	for i := 0; i < 40000; i++ {
		logLine(fmt.Sprintf("start %d\n", i*7919))
	}
	fmt.Println("ready")
	select {}
}
