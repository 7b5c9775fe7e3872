"""GoogLeNet, once, eagerly: a whole process, to see how much longer it takes when it is measured."""
import torch
import torchvision

with torch.no_grad():
    net = torchvision.models.googlenet(weights=None, aux_logits=False, init_weights=False).cuda().eval()
    print(net(torch.zeros(1, 3, 224, 224, device="cuda")).isfinite().all().item())
