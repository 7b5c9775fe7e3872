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
		param := dag.KernelParam{Name: name, Buffer: true, Size: addressBytes}
		param.DType, param.Mode = p.pointsTo()
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
		return dag.KernelParam{Name: name}, fmt.Errorf("parameter %s is of type %s; numbers, pointers and structures of these can be passed", name, textOf(p.words))
	}
	return dag.KernelParam{Name: name, DType: dtype, Size: int32(dtype.Size())}, nil
}

// members are the parameters that kernels of dag have for the pointers in structures: one for each, after all others.
func members(params []dag.KernelParam) ([]dag.KernelParam, error) {
	var list []dag.KernelParam
	for i := range params {
		p := &params[i]
		if p.Struct == nil {
			continue
		}
		for _, pointer := range p.Struct.Pointers() {
			if len(list) == mostPointers {
				return nil, fmt.Errorf("the structures that it takes by value have more than %d pointers", mostPointers)
			}
			list = append(list, dag.KernelParam{Name: p.Name + "." + pointer.Path, Buffer: true, DType: pointer.DType, Mode: pointer.Mode, Size: addressBytes,
				Within: int32(i) + 1, Offset: pointer.Offset})
		}
	}
	return list, nil
}

// mostPointers is how many pointers the parameters of a kernel, which take 4 KB, can have at most.
const mostPointers = 512
