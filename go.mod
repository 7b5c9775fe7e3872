module github.com/dagrun/dagrun

go 1.26
