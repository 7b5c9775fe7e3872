module example.com/embedding

go 1.26.0

require github.com/dagrun/dagrun v0.0.0

require (
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/term v0.47.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

replace github.com/dagrun/dagrun => ../..
