// expect: hot buildReport
// A report is made by appending to a string, which copies all of it each time.
package main

import (
	"fmt"
	"os"
	"time"
)

//go:noinline
func buildReport(lines int) string {
	report := ""
	for i := 0; i < lines; i++ {
		report += "line of the report\n"
	}
	return report
}

func main() {
	time.AfterFunc(90*time.Second, func() { os.Exit(1) })
	fmt.Println("ready")
	total := 0
	for {
		total += len(buildReport(3000))
	}
}
