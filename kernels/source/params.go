// Parameters of kernels in the words of dag.

package source

import (
	"fmt"

	"github.com/dagrun/dagrun/dag"
)

// describe is the parameter in the words of dag. Pointers to types that dag does not have are untyped.
func (p *parameter) describe(index int, structs structures) (dag.KernelParam, error) {
	name := p.name
	if name == "" {
		name = fmt.Sprintf("p%d", index+1)
	}
	if p.problem != "" {
		return dag.KernelParam{Name: name}, fmt.Errorf("parameter %d %s", index+1, p.problem)
	}
	if p.stars == 0 && isHandle(p.words, textureTypes) {
		return dag.KernelParam{Name: name, Texture: true, Size: 8}, nil
	}
	if p.stars == 0 && isHandle(p.words, surfaceTypes) {
		return dag.KernelParam{Name: name}, fmt.Errorf("parameter %s is a surface, which needs a CUDA array; dagrun has buffers: take a pointer instead", name)
	}
	dtype, known := p.dtype()
	if p.stars > 0 {
		param := dag.KernelParam{Name: name, Buffer: true, Mode: dag.ReadWrite, Size: 8}
		if p.stars == 1 && known {
			param.DType = dtype
		}
		if p.constant && p.stars == 1 {
			param.Mode = dag.Read
		}
		return param, nil
	}
	if !known || dtype == dag.InvalidDType || dtype.Components() > 1 {
		s, err := structs.of(p)
		if s != nil {
			return dag.KernelParam{Name: name, Struct: s, Size: s.Size}, nil
		}
		if err != nil {
			return dag.KernelParam{Name: name}, fmt.Errorf("parameter %s cannot be passed by value: %w", name, err)
		}
		return dag.KernelParam{Name: name}, fmt.Errorf("parameter %s is of type %s; numbers, pointers and structures of numbers can be passed", name, textOf(p.words))
	}
	return dag.KernelParam{Name: name, DType: dtype, Size: int32(dtype.Size())}, nil
}
