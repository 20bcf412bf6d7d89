module check_pprof

go 1.19

require github.com/google/pprof v0.0.0-20230926050212-f7f687d19a98
