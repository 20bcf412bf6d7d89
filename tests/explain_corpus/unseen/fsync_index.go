// expect: disk writeEntry
// Each entry of an index is synced to the disk by itself.
package main

import (
	"fmt"
	"os"
	"time"
)

//go:noinline
func writeEntry(file *os.File, number int) {
	if _, err := file.WriteAt([]byte(fmt.Sprintf("%010d\n", number)), int64(number%1000*11)); err != nil {
		panic(err)
	}
	if err := file.Sync(); err != nil {
		panic(err)
	}
}

func main() {
	time.AfterFunc(90*time.Second, func() { panic("over") })
	file, err := os.CreateTemp(".", "index")
	if err != nil {
		panic(err)
	}
	os.Remove(file.Name())
	fmt.Println("ready")
	for number := 0; ; number++ {
		writeEntry(file, number)
	}
}
