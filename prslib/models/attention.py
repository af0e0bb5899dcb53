"""The two networks with attention, each on the small backbone and on ResNet-101."""

from functools import partial

from prslib.models.attention_consistency import AttentionConsistency
from prslib.models.convnet import convnet_backbone
from prslib.models.rnn_attention import RNNAttention
from prslib.models.torchvision_resnet import resnet_backbone

_resnet101 = partial(resnet_backbone, name="resnet101")

convnet_consistency = partial(AttentionConsistency, backbone=convnet_backbone)
convnet_recurrent = partial(RNNAttention, backbone=convnet_backbone)
resnet101_consistency = partial(AttentionConsistency, backbone=_resnet101)
resnet101_recurrent = partial(RNNAttention, backbone=_resnet101)
