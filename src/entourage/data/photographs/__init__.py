"""Photographs as sets of regions: cut, described and ranked by depth."""
