module example.com/embedding

go 1.26.0

require github.com/dagrun/dagrun v0.0.0

require gopkg.in/yaml.v3 v3.0.1 // indirect

replace github.com/dagrun/dagrun => ../..
