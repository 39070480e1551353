"""Adam and AdamW as torch has them, without its compiler.

The first optimizer of a process makes torch load `torch._dynamo`, only to keep the compiler away from the optimizer's own
methods: 70 MB and 1.5 s, in every training, and in the app's server once somebody asks what a training would take. Here only
models are compiled, so these methods are called as they are written. Weights come out the same, bit for bit.
"""

from inspect import unwrap

import torch


class Adam(torch.optim.Adam):
    add_param_group = unwrap(torch.optim.Adam.add_param_group)
    zero_grad = unwrap(torch.optim.Adam.zero_grad)
    state_dict = unwrap(torch.optim.Adam.state_dict)
    load_state_dict = unwrap(torch.optim.Adam.load_state_dict)
    step = torch.no_grad()(unwrap(torch.optim.Adam.step))


class AdamW(Adam, torch.optim.AdamW):
    pass
