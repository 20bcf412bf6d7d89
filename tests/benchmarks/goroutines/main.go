// Two goroutines that wake each other as fast as they can, on one CPU, beside goroutines that are
// parked: each line is the rounds and the CPU time (ns) of half a second. With a second argument
// fgprof, linked in, profiles them at 99 Hz.
//
// By hand, with fgprof as a module of Go's: see run.py.
package main

import (
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
	time.Sleep(200 * time.Millisecond)
	fmt.Println("ready")
	if len(os.Args) > 2 {
		defer fgprof.Start(io.Discard, fgprof.FormatPprof)()
	}
	for {
		firstRounds, firstCPU := rounds, cpu()
		time.Sleep(500 * time.Millisecond)
		fmt.Println(rounds-firstRounds, cpu()-firstCPU)
	}
}
