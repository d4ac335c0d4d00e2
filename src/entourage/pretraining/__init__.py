"""How the pretrained net was made."""
