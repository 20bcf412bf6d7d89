// expect: none
// A collector: at each tick of a tenth of a second it reads a file and adds up its numbers.
package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

//go:noinline
func readLoad() int {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		panic(err)
	}
	return len(strings.Fields(string(text)))
}

func main() {
	time.AfterFunc(90*time.Second, func() { panic("over") })
	fmt.Println("ready")
	total := 0
	for range time.Tick(100 * time.Millisecond) {
		total += readLoad()
	}
}
