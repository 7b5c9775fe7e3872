// Texture objects: made for the arguments of launches that are read through one, kept while the memory that they read is.

package driver

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
)

// resourceDesc is CUDA_RESOURCE_DESC for memory without an array: a row of texels, or rows that lie pitch bytes apart.
type resourceDesc struct {
	kind     uint32
	_        uint32
	ptr      cudart.Ptr
	format   uint32
	channels uint32
	width    uint64 // of a row without a pitch: the bytes, otherwise the texels
	height   uint64
	pitch    uint64
	_        [11]uint64
	flags    uint32
	_        uint32
}

// textureDesc is CUDA_TEXTURE_DESC.
type textureDesc struct {
	address      [3]uint32
	filter       uint32
	flags        uint32
	anisotropy   uint32
	mipmapFilter uint32
	mipmap       [3]float32 // bias, and the least and the greatest level
	border       [4]float32
	_            [12]int32
}

const (
	resourceLinear  = 2 // CU_RESOURCE_TYPE_LINEAR
	resourcePitch2D = 3 // CU_RESOURCE_TYPE_PITCH2D

	textureAsInteger  = 1 // CU_TRSF_READ_AS_INTEGER
	textureNormalized = 2 // CU_TRSF_NORMALIZED_COORDINATES
)

// textureFormats are CUarray_format by element.
var textureFormats = map[cudart.Element]uint32{
	cudart.ElementU8: 1, cudart.ElementU16: 2, cudart.ElementU32: 3, cudart.ElementS8: 8, cudart.ElementS16: 9, cudart.ElementS32: 10,
	cudart.ElementF16: 16, cudart.ElementF32: 32,
}

// textureAddresses are CUaddress_mode by address mode.
var textureAddresses = map[cudart.AddressMode]uint32{cudart.Wrap: 0, cudart.Clamp: 1, cudart.Mirror: 2, cudart.Border: 3}

// bindTextures returns a launch's arguments with the handles of their textures, which are in Bits.
func (p *Platform) bindTextures(d *device, args []cudart.Value) ([]cudart.Value, error) {
	bound := args
	for i := range args {
		if args[i].Texture == nil {
			continue
		}
		handle, err := p.texture(d, &args[i])
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i, err)
		}
		if &bound[0] == &args[0] {
			bound = slices.Clone(args)
		}
		bound[i].Bits = handle
	}
	return bound, nil
}

// texture returns the handle of an argument's texture object, which it makes at first.
func (p *Platform) texture(d *device, v *cudart.Value) (uint64, error) {
	t := v.Texture
	if err := t.Check(v.Bytes); err != nil {
		return 0, err
	}
	if t.Depth > 0 {
		return 0, fmt.Errorf("%w: a texture of three dimensions needs a CUDA array", cudart.ErrUnsupported)
	}
	p.textures.mu.Lock()
	defer p.textures.mu.Unlock()
	key := textureKey{d, v.Ptr, *t}
	if known, ok := p.textures.known[key]; ok {
		return known.handle, nil
	}
	rules, err := p.textureRules(d)
	if err != nil {
		return 0, err
	}
	switch {
	case uint64(v.Ptr)%rules.align != 0:
		return 0, fmt.Errorf("a texture at address %#x; device %d needs textures at multiples of %d bytes", uint64(v.Ptr), d.number, rules.align)
	case t.Height > 1 && uint64(t.Pitch)%rules.pitchAlign != 0:
		return 0, fmt.Errorf("a texture with rows that are %d bytes apart; device %d needs a multiple of %d", t.Pitch, d.number, rules.pitchAlign)
	}
	s, err := p.sequence(d)
	if err != nil {
		return 0, err
	}
	defer s.release()
	s.callPointers(cuTexObjectCreate, s.out(0), unsafe.Pointer(describeResource(v)), unsafe.Pointer(describeTexture(t)), uintptr(0))
	if err := s.run(); err != nil {
		return 0, err
	}
	if p.textures.known == nil {
		p.textures.known = map[textureKey]textureObject{}
	}
	p.textures.known[key] = textureObject{s.outs[0], p.allocationOf(v.Ptr)}
	return s.outs[0], nil
}

// textureRules asks a device what it demands of textures, once.
func (p *Platform) textureRules(d *device) (textureRules, error) {
	if rules, known := p.textures.rules[d]; known {
		return rules, nil
	}
	s, err := p.sequence(d)
	if err != nil {
		return textureRules{}, err
	}
	defer s.release()
	s.call(cuDeviceGetAttribute, s.out(0), attrTextureAlignment, uintptr(d.handle))
	s.call(cuDeviceGetAttribute, s.out(1), attrTexturePitchAlignment, uintptr(d.handle))
	if err := s.run(); err != nil {
		return textureRules{}, err
	}
	rules := textureRules{max(1, uint64(uint32(s.outs[0]))), max(1, uint64(uint32(s.outs[1])))}
	if p.textures.rules == nil {
		p.textures.rules = map[*device]textureRules{}
	}
	p.textures.rules[d] = rules
	return rules, nil
}

func describeResource(v *cudart.Value) *resourceDesc {
	t := v.Texture
	r := &resourceDesc{kind: resourceLinear, ptr: v.Ptr, format: textureFormats[t.Element], channels: uint32(t.Channels), width: uint64(t.Width * t.Texel())}
	if t.Height > 0 {
		r.kind, r.width, r.height, r.pitch = resourcePitch2D, uint64(t.Width), uint64(t.Height), uint64(t.Pitch)
	}
	return r
}

func describeTexture(t *cudart.Texture) *textureDesc {
	d := &textureDesc{border: t.Border}
	if t.Height > 0 {
		for axis := range d.address {
			d.address[axis] = textureAddresses[t.Address[axis]]
		}
		if t.Linear {
			d.filter = 1
		}
		if t.Normalized {
			d.flags |= textureNormalized
		}
	}
	if !t.Floats() {
		d.flags |= textureAsInteger
	}
	return d
}

// allocationOf returns the start of the allocation that an address lies in, 0 if this platform did not make it.
func (p *Platform) allocationOf(ptr cudart.Ptr) cudart.Ptr {
	p.host.mu.Lock()
	defer p.host.mu.Unlock()
	for start, block := range p.host.device {
		if ptr >= start && ptr < start+cudart.Ptr(block.bytes) {
			return start
		}
	}
	return 0
}

// dropTextures destroys the texture objects over an allocation; 0: those over all memory, as the platform closes.
func (p *Platform) dropTextures(owner cudart.Ptr) error {
	p.textures.mu.Lock()
	defer p.textures.mu.Unlock()
	var first error
	for key, object := range p.textures.known {
		if owner != 0 && object.owner != owner {
			continue
		}
		delete(p.textures.known, key)
		if err := p.dispose(key.d, cuTexObjectDestroy, uintptr(object.handle)); err != nil && first == nil {
			first = err
		}
	}
	return first
}
