// check_pprof reads a profile with pprof's own package, which checks it on parsing, checks it once
// more, and prints the sum of each of its sample types.
package main

import (
	"fmt"
	"os"

	"github.com/google/pprof/profile"
)

func run(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	p, err := profile.Parse(file)
	if err != nil {
		return err
	}
	if err := p.CheckValid(); err != nil {
		return err
	}
	for i, kind := range p.SampleType {
		total := int64(0)
		for _, sample := range p.Sample {
			total += sample.Value[i]
		}
		fmt.Printf("%s/%s %d\n", kind.Type, kind.Unit, total)
	}
	return nil
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
