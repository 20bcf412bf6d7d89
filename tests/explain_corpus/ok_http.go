// expect: none
// An HTTP server with one client that asks now and then.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

func hello(answer http.ResponseWriter, _ *http.Request) {
	fmt.Fprintln(answer, "hello")
}

func main() {
	time.AfterFunc(90*time.Second, func() { os.Exit(1) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	http.HandleFunc("/", hello)
	go http.Serve(listener, nil)
	fmt.Println("ready")
	for {
		if answer, err := http.Get("http://" + listener.Addr().String()); err == nil {
			io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
		time.Sleep(40 * time.Millisecond)
	}
}
