// Two goroutines that wake each other as fast as they can, on one CPU, beside goroutines that are
// parked. Each line that it reads is answered by its rounds so far, the time and its own CPU time
// (ns); after a line "fgprof" it is profiled by that, linked in, at 99 Hz, and after the next "fgprof" no more.
//
// By hand, with fgprof as a module of Go's: see run.py.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/felixge/fgprof"
)

//go:noinline
func park(depth int, wake chan int) int {
	if depth == 0 {
		return <-wake
	}
	return park(depth-1, wake) + 1
}

func cpu() int64 {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return usage.Utime.Nano() + usage.Stime.Nano()
}

// fgprof divides by zero if it had no time for a sample.
func end(stop func() error) {
	defer func() { recover() }()
	stop()
}

func main() {
	parked, _ := strconv.Atoi(os.Args[1])
	runtime.GOMAXPROCS(1)
	wake, ping, pong := make(chan int), make(chan int), make(chan int)
	for i := 0; i < parked; i++ {
		go park(5, wake)
	}
	rounds := 0
	go func() {
		for {
			pong <- <-ping
		}
	}()
	go func() {
		for {
			ping <- 1
			<-pong
			rounds++
		}
	}()
	start := time.Now()
	var stop func() error
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		switch {
		case lines.Text() != "fgprof":
		case stop == nil:
			stop = fgprof.Start(io.Discard, fgprof.FormatPprof)
		default:
			end(stop)
			stop = nil
		}
		fmt.Println(rounds, time.Since(start).Nanoseconds(), cpu())
	}
}
