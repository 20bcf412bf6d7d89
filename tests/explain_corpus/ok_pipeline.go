// expect: none
// A pipeline: items come at their own pace, and each stage is done with one long before the next comes.
package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

func split(in <-chan string, out chan<- []string) {
	for line := range in {
		out <- strings.Fields(line)
	}
}

func count(in <-chan []string, out chan<- int) {
	for words := range in {
		out <- len(words)
	}
}

func main() {
	time.AfterFunc(90*time.Second, func() { os.Exit(1) })
	lines, words, counts := make(chan string, 8), make(chan []string, 8), make(chan int, 8)
	go split(lines, words)
	go count(words, counts)
	go func() {
		for range time.Tick(5 * time.Millisecond) {
			lines <- strings.Repeat("a line with words ", 50)
		}
	}()
	fmt.Println("ready")
	total := 0
	for n := range counts {
		total += n
	}
}
